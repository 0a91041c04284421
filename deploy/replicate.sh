#!/bin/bash
# Run once, where the primary's database is made: a standby may connect with the password, and is waited for.
set -euo pipefail
echo "host replication all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
# What is committed is then on both, so that a promotion loses nothing. While the standby is away, writes wait and
# answer 503; whoever would rather lose the last writes makes this empty. It holds from the next start on: until then
# there is no standby that could be waited for.
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
