"""The report as one HTML file: its data in compressed columns, its plots, its parts, and the page around them."""
