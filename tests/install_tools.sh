#!/bin/sh
# Install the programs that some tests need, where this is Debian and we are root. Without them those tests skip.
# nginx and Prometheus are unpacked into .tools, not installed: installing them would start services.
set -eu
cd "$(dirname "$0")/.."
missing=""
command -v chromium >/dev/null && command -v chromedriver >/dev/null || missing="chromium chromium-driver"
command -v systemd-analyze >/dev/null || missing="$missing systemd"
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || missing="$missing libfaketime"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Not root on Debian: tests that need Chromium, nginx, promtool, systemd or libfaketime may skip."
    exit 0
fi
apt-get update -qq
[ -z "$missing" ] || DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
rm -rf .tools && mkdir -p .tools/packages
(cd .tools/packages && apt-get download -qq -o APT::Sandbox::User=root nginx prometheus)
for package in .tools/packages/*.deb; do dpkg-deb -x "$package" .tools; done
rm -r .tools/packages
touch .tools/ready
