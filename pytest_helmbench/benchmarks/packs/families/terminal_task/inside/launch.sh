# Start a checker with an environment in which nothing leads into the workspace.
#
#   sh -c TEXT sh WORKSPACE SECRET @python [ARGUMENT...]    some Python that is not of the workspace
#   sh -c TEXT sh WORKSPACE SECRET /path|name [ARGUMENT...]
#
# Says the secret on stderr when there is nothing to start.
workspace=$1 secret=$2
shift 2

is_inside() {
  case $1/ in "$workspace"/*) return 0;; esac
  found=$(cd "$1" 2>/dev/null && pwd -P) || found=$1
  case $found/ in "$workspace"/*) return 0;; esac
  return 1
}

# Prints a list of folders without those in the workspace and those that depend on where we are.
outside() {
  rest=$1: kept=
  while [ -n "$rest" ]; do
    entry=${rest%%:*} rest=${rest#*:}
    case $entry in /*) is_inside "$entry" || kept=${kept:+$kept:}$entry;; esac
  done
  printf %s "$kept"
}

cannot() {
  printf '%s %s\n' "$secret" "$1" >&2
  exit 127
}

PATH=$(outside "$PATH")
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
for name in PYTHONPATH LD_LIBRARY_PATH PERL5LIB RUBYLIB NODE_PATH CLASSPATH GOPATH; do
  eval "value=\${$name-}"
  [ -z "$value" ] || export "$name=$(outside "$value")"
done
for name in HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME ZDOTDIR; do
  eval "value=\${$name-}"
  [ -z "$value" ] || ! is_inside "$value" || export "$name=${TMPDIR:-/tmp}"
done
unset LD_PRELOAD LD_AUDIT BASH_ENV ENV PYTHONHOME PYTHONSTARTUP PYTHONINSPECT PYTHONBREAKPOINT PYTHONWARNINGS \
  PYTEST_ADDOPTS PYTEST_PLUGINS PERL5OPT RUBYOPT NODE_OPTIONS GIT_DIR GIT_WORK_TREE GIT_CONFIG_GLOBAL

program=$1
shift
if [ "$program" = @python ]; then
  program=$(command -v python3 || command -v python) || cannot "there is no Python"
  real=$(readlink -f "$program" 2>/dev/null) || real=$program
  case $real in "$workspace"/*) cannot "the only Python lies in the workspace";; esac
fi
case $program in
  /*) is_inside "${program%/*}" || command -v "$program" >/dev/null || cannot "$program cannot be started";;
  */*) ;;
  *) command -v "$program" >/dev/null || cannot "$program is not there";;
esac
exec "$program" "$@"
