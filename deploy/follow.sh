#!/bin/bash
# A standby: copies the primary the first time, follows it from then on. `pg_ctl promote` makes it the primary.
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    until pg_basebackup --checkpoint=fast --wal-method=stream --write-recovery-conf --pgdata="$PGDATA" \
        --dbname="host=primary user=$POSTGRES_USER application_name=standby"; do
        sleep 2
    done
    # That the primary waits for a standby was copied along. Promoted, this one would wait for itself: nothing could be
    # written. `ALTER SYSTEM SET synchronous_standby_names = 'standby'` brings it back once it has a standby of its own.
    echo "synchronous_standby_names = ''" >> "$PGDATA/postgresql.auto.conf"
    chmod 0700 "$PGDATA"
fi
exec postgres -c hot_standby_feedback=on -c wal_keep_size=1GB
