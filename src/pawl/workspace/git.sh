# Runs git over a private repository folder (git.py): WHAT OWN COMMON WORD…
# OWN and COMMON are the worktree's and the repository's folder. The variables PAWL_GIT_* are set by the caller.
set -eu
given=$PATH PATH=$PAWL_GIT_PLACES
command -v git > /dev/null || {
    # One of the user's toolchains: never one in the workspace, which an agent may have put there.
    here=$(pwd -P) IFS=:
    set -f
    for one in $given; do
        real=$(readlink -f "$one/git") || continue
        case $one,$real in [!/]* | "$here"/* | *,"$here"/*) continue ;; esac
        case $(readlink -f "$one") in "$here" | "$here"/*) continue ;; esac
        if [ -f "$real" ] && [ -x "$real" ]; then PATH=$PATH:$one; break; fi
    done
    set +f
    unset IFS
    command -v git > /dev/null || exit 127
}
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_NO_REPLACE_OBJECTS=1
export GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL= GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_LITERAL_PATHSPECS=1
export GIT_PAGER=cat LC_ALL=C.UTF-8
absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s' "$PWD/$1" ;; esac; }
what=$1 own=$(absolute "$2") common=$(absolute "$3")
shift 3
GIT_WORK_TREE=$PWD
GIT_DIR=$(mktemp -d)
trap 'rm -rf "$GIT_DIR"' EXIT
GIT_INDEX_FILE=$GIT_DIR/index
export GIT_WORK_TREE GIT_DIR GIT_INDEX_FILE PATH
mkdir -p "$GIT_DIR/refs" "$GIT_DIR/objects/info" "$GIT_DIR/info" "$GIT_DIR/theirs"
printf '%s\n' "$GIT_DIR/theirs" > "$GIT_DIR/objects/info/alternates"
printf '%s\n' "$PAWL_GIT_HEAD" > "$GIT_DIR/HEAD"
cat > "$GIT_DIR/config" << END
[core]
	repositoryFormatVersion = 1
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	splitIndex = false
	untrackedCache = false
	commitGraph = false
$PAWL_GIT_COMPARING
[extensions]
	objectFormat = $PAWL_GIT_ALGORITHM
[protocol]
	allow = never
[safe]
	bareRepository = explicit
[gc]
	auto = 0
[maintenance]
	auto = false
END
printf '%s' "$PAWL_GIT_ATTRIBUTES" > "$GIT_DIR/attributes"
copy() { if [ -f "$1" ] && [ ! -h "$1" ]; then cp -p "$1" "$GIT_DIR/$2"; fi; }
copy "$own/index" index
for one in "$own"/sharedindex.*; do copy "$one" "${one##*/}"; done
copy "$common/shallow" shallow
copy "$common/info/attributes" info/attributes
copy "$common/info/exclude" info/exclude
git() { command git -c core.attributesFile="$GIT_DIR/attributes" "$@"; }
if [ "$PAWL_GIT_OBJECTS" = 1 ]; then
    bad=$(find "$common/objects" ! -type d ! -type f -print -quit)
    if [ -n "$bad" ]; then echo "'$bad' is no file" >&2; exit 4; fi
    for one in "$common"/objects/[0-9a-f][0-9a-f] "$common/objects/pack"; do
        if [ -d "$one" ]; then printf '%s\0' "$one"; fi
    done | xargs -0 -r ln -s -t "$GIT_DIR/theirs"
fi
compared() {
    bad=$(find . '(' -name .gitattributes -o -name .gitignore ')' ! -type f ! -type l -print -quit)
    if [ -n "$bad" ]; then echo "'$bad' is no file" >&2; exit 4; fi
    git add --all --intent-to-add . || true
    git diff --no-ext-diff --no-textconv --no-color "$@"
}
whole() {
    commit=$(git rev-parse "$1^{commit}")
    printf '%s\n' "$commit"
    git cat-file commit "$commit"
    printf '\0'
    git ls-tree -r -z "$commit"
    printf '\0'
    git ls-tree -r "$commit" | while read -r mode kind name rest; do
        case $kind in blob) printf '%s\n' "$name" ;; esac
    done | sort -u | git cat-file --batch
}
case $what in
log) git "$@" ;;
tracked) git ls-files -z -- "$@" ;;
staged) git ls-files -z -s -- "$@" ;;
folders) git ls-tree -z HEAD; if [ $# -gt 0 ]; then git ls-tree -z -t HEAD -- "$@"; fi ;;
attributes) git check-attr -z filter ident working-tree-encoding text eol crlf -- "$@" ;;
whole) whole HEAD ;;
fetched)
    # Of a repository elsewhere, with nothing of the user's: the one command that goes out.
    export GIT_ALLOW_PROTOCOL=https:http:git:file GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
    git -c protocol.allow=always fetch -q --no-tags --no-write-fetch-head --no-auto-gc --depth 1 -- "$1" "+$2:refs/fetched" >&2
    whole refs/fetched
    ;;
back)
    # The files as HEAD has them, on a bench.
    git read-tree HEAD 2> /dev/null || git read-tree --empty
    for one in "$@"; do rm -f -- "$one" || true; done
    git ls-files -z -- "$@" | git checkout-index -f -z --stdin
    ;;
put) printf '%s\0' "$@" | git update-index -z --index-info; cat "$GIT_INDEX_FILE" ;;
changed) compared --name-status --find-copies -z "$1" ;;
diff) tree=$1; shift; compared "$tree" -- "$@" ;;
esac
