#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/fetch-assets against a pip that we play ourselves: right and wrong wheels, no network, no pip, a cache that
# cannot be written, a full disk, interruption, and a second run that must not call pip at all. No network is used.
#
# usage: tests/test_fetch_assets.sh [SOURCE_DIR]
set -u
source_dir=$(cd "${1:-$(dirname "$0")/..}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

mkdir "$work/tools" "$work/pip"
cp "$source_dir/tools/fetch-assets" "$work/tools/"
fetch=$work/tools/fetch-assets
FK_CACHE=$work/cache
PYTHONPATH=$work                                     # 'python3 -m pip' finds $work/pip before the real one
unset PIP_CONFIG_FILE
export FK_CACHE PYTHONPATH

# A wheel with one member of 100,000 bytes, and the table that names it.
python3 - "$work" <<'PY'
import hashlib, sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(work + "/thing-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("thing/model.bin", bytes(range(250)) * 400)
    wheel.writestr("thing/inner/words.txt", "words")
digest = hashlib.sha256(open(work + "/thing-1.0-py3-none-any.whl", "rb").read()).hexdigest()
row = "{}\tthing\t1.0\t{}\tthing/{}\t{}\t{}\tMIT\n"
with open(work + "/tools/assets.tsv", "w") as table:
    table.write("# comment\n")
    table.write(row.format("thing", digest, "model.bin", "model.bin", 100000))
    table.write(row.format("other-hash", "0" * 64, "model.bin", "other.bin", 100000))
    table.write(row.format("other-size", digest, "model.bin", "size.bin", 99999))
    table.write(row.format("no-member", digest, "nothing.bin", "nothing.bin", 100000))
    table.write(row.format("folder", digest, "", "folder", 100005))
    table.write(row.format("no-folder", digest, "nothing/", "nothing", 1))
PY

# The pip we play: behaves as the file $work/pip/mode says and leaves a mark that it was called.
: > "$work/pip/__init__.py"
cat > "$work/pip/__main__.py" <<'PY'
import os, sys, time
here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
open(here + "/called", "w").close()
folder = sys.argv[sys.argv.index("-d") + 1]
mode = open(here + "/pip/mode").read().strip()
if mode == "offline":
    sys.exit("ERROR: No matching distribution found for thing==1.0")
if mode == "full":
    open(folder + "/thing-1.0-py3-none-any.whl", "wb").write(b"half")
    sys.exit("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
if mode == "nopip":
    sys.exit("/usr/bin/python3: No module named pip")
if mode == "once":                                    # a second download fails
    open(here + "/pip/mode", "w").write("offline")
if mode == "slow":
    open(folder + "/half.whl", "wb").write(b"half")
    open(here + "/started", "w").close()
    time.sleep(60)
os.link(here + "/thing-1.0-py3-none-any.whl", folder + "/thing-1.0-py3-none-any.whl")
PY

# expect NAME CODE TEXT -- COMMAND...: the exit code, and a text that the output must hold.
expect()
{
    name=$1 code=$2 text=$3
    shift 4
    "$@" > "$work/output" 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -e "$text" "$work/output"; then
        echo "FAILED $name: exit $got (expected $code), expected text '$text', output:"
        cat "$work/output"
        failures=$((failures + 1))
    elif grep -q Traceback "$work/output"; then
        echo "FAILED $name: a traceback"; cat "$work/output"
        failures=$((failures + 1))
    else
        echo "ok $name"
    fi
}
# Nothing but whole assets and the lock may lie in the cache.
expect_clean()
{
    left=$(find "$FK_CACHE/assets" -mindepth 1 ! -name .lock ! -name model.bin 2>/dev/null)
    if [ -n "$left" ]; then
        echo "FAILED $1: left behind: $left"
        failures=$((failures + 1))
    fi
}

echo offline > "$work/pip/mode"
expect "missing: --print"      3 "thing: not in $FK_CACHE/assets"    -- "$fetch" --print thing
expect "no network"            3 "thing: cannot download thing 1.0"  -- "$fetch" thing
expect_clean "no network"
echo nopip > "$work/pip/mode"
expect "no pip"                3 "run tools/install-deps"            -- "$fetch" thing
echo full > "$work/pip/mode"
expect "disk full in pip"      2 "no space left in $FK_CACHE/assets" -- "$fetch" thing
expect_clean "disk full in pip"

echo good > "$work/pip/mode"
expect "wrong hash"            1 "expected 0000000000"               -- "$fetch" other-hash
expect_clean "wrong hash"
expect "wrong size"            1 "has 100000 bytes, expected 99999"  -- "$fetch" other-size
expect "member missing"        1 "nothing.bin"                       -- "$fetch" no-member
expect "unknown asset"         2 "did you mean 'thing'?"             -- "$fetch" thign
expect "unknown option"        2 "bad arguments '--force'"           -- "$fetch" --force
expect "cannot write: /proc"   2 "/proc/fastkernels/assets"          -- env FK_CACHE=/proc/fastkernels "$fetch" thing
# Writes beyond 16 KiB fail, as on a disk that fills up while the wheel is unpacked (our pip links the wheel: no write).
expect "disk full in unpack"   2 "cannot write to $FK_CACHE/assets"  -- sh -c "ulimit -f 32; exec '$fetch' thing"
expect_clean "disk full in unpack"

echo slow > "$work/pip/mode"
"$fetch" thing > /dev/null 2>&1 &
pid=$!
tries=0
while [ ! -e "$work/started" ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -TERM $pid
wait $pid
if [ $? -ne 143 ]; then echo "FAILED interrupted: exit code"; failures=$((failures + 1)); else echo "ok interrupted"; fi
expect_clean "interrupted"
mkdir "$FK_CACHE/assets/.fetch-killed" && echo half > "$FK_CACHE/assets/.fetch-killed/half.whl"
echo 12345 > "$FK_CACHE/assets/model.bin"            # a truncated file under the final name is replaced

echo good > "$work/pip/mode"
expect "fetched"               0 "$FK_CACHE/assets/model.bin"        -- "$fetch" thing
expect_clean "fetched after a killed run"
expect "bytes are right"       0 "True"                              -- python3 -c \
    "print(open('$FK_CACHE/assets/model.bin', 'rb').read() == bytes(range(250)) * 400)"
mkdir "$FK_CACHE/assets/folder" && echo old > "$FK_CACHE/assets/folder/old" # an incomplete folder is replaced whole
expect "a folder"              0 "$FK_CACHE/assets/folder"           -- "$fetch" folder
expect "its files"             0 "$FK_CACHE/assets/folder/inner/words.txt" -- find "$FK_CACHE/assets/folder" -name words.txt -size 5c
expect "nothing of the old"    2 ""                                  -- ls "$FK_CACHE/assets/folder/old"
rm -r "$FK_CACHE/assets/folder" "$FK_CACHE/assets/model.bin" "$work/called"
printf 'once' > "$work/pip/mode"
expect "two of one wheel"      0 "$FK_CACHE/assets/folder"           -- "$fetch" thing folder
echo good > "$work/pip/mode"
expect "no such folder"        1 "no folder thing/nothing/"          -- "$fetch" no-folder
expect "--print of a folder"   0 "$FK_CACHE/assets/folder"           -- "$fetch" --print folder
rm -f "$work/called"
echo offline > "$work/pip/mode"
expect "second run, offline"   0 "$FK_CACHE/assets/model.bin"        -- "$fetch" thing
expect "--print"               0 "$FK_CACHE/assets/model.bin"        -- "$fetch" --print thing
expect "--list"                0 "present"                           -- "$fetch" --list
if [ -e "$work/called" ]; then echo "FAILED second run: pip was called"; failures=$((failures + 1)); fi

[ $failures -eq 0 ] && echo "fetch-assets: all passed" || echo "fetch-assets: $failures failed"
exit $((failures != 0))
