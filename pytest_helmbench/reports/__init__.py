"""Values to text: one object per format of reports and exports, tables and lines for people. Pure."""
