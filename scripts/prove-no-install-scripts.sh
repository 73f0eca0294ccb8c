#!/usr/bin/env bash
# Proves that nothing has to run while packages are installed: a fresh copy, installed without any install script, shows the demo.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar -x -C "$copy"
cd "$copy"
npm ci --ignore-scripts --no-audit --no-fund
npm run --silent build
# In a folder of its own, as a user would; its database needs a parent that it may enter.
chmod 755 "$copy" && mkdir "$copy/place" && cd "$copy/place"
node ../dist/cli/main.js demo --json >demo.json
node -e 'JSON.parse(require("node:fs").readFileSync("demo.json", "utf8"))'
echo "the demo works after npm ci --ignore-scripts"
