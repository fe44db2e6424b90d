-- queue_health: check the database for problems that slow queues down or endanger messages.
-- Arguments:   none
-- Returns:     one row per check: name, verdict (ok, warn or bad), measured (what was measured; NULL: the caller may not see
--              it), unit, detail (what is wrong, and what to do)
-- Errors:      none
-- Transaction: reads only; only SYSDBA, the owner of the database and RDB$ADMIN see connections of other users, and on
--              Firebird 4.0 and later a role with the system privilege MONITOR_ANY_ATTACHMENT
-- Example:     SELECT * FROM mq_queue_health WHERE verdict <> 'ok';

CREATE OR ALTER PROCEDURE mq_queue_health
RETURNS (
    name varchar(60) CHARACTER SET UTF8, verdict varchar(4) CHARACTER SET UTF8, measured double precision,
    unit varchar(20) CHARACTER SET UTF8, detail mq_text
)
AS
DECLARE v_now timestamp; DECLARE v_oldest timestamp;
DECLARE v_attachment bigint; DECLARE v_next bigint; DECLARE v_interesting bigint; DECLARE v_active bigint;
DECLARE v_snapshot bigint; DECLARE v_sweep bigint; DECLARE v_oldest_id bigint; DECLARE v_id bigint;
DECLARE v_user varchar(300) CHARACTER SET UTF8; DECLARE v_process varchar(300) CHARACTER SET UTF8;
DECLARE v_address varchar(300) CHARACTER SET UTF8;
DECLARE v_forced smallint; DECLARE v_sees smallint; DECLARE v_check smallint;
DECLARE v_page integer;
DECLARE v_type mq_name;
BEGIN
    SELECT mon$next_transaction, mon$oldest_transaction, mon$oldest_active, mon$oldest_snapshot, mon$forced_writes,
        mon$sweep_interval, mon$page_size,
        IIF(CURRENT_USER = mon$owner OR CURRENT_USER = 'SYSDBA' OR CURRENT_ROLE = 'RDB$ADMIN', 1, 0)
    FROM mon$database
    INTO v_next, v_interesting, v_active, v_snapshot, v_forced, v_sweep, v_page, v_sees;
    /*!4 v_sees = MAXVALUE(v_sees, IIF(RDB$SYSTEM_PRIVILEGE(MONITOR_ANY_ATTACHMENT), 1, 0)); */
    v_check = 0;
    WHILE (v_check < 15) DO
    BEGIN
        v_check = v_check + 1;
        name = TRIM(DECODE(v_check,
            1, 'oldest_transaction', 2, 'oldest_active_gap', 3, 'oldest_snapshot_gap',
            4, 'oldest_interesting_gap', 5, 'sweep_interval', 6, 'forced_writes',
            7, 'page_size', 8, 'time_zone', 9, 'expired_leases',
            10, 'stuck_groups', 11, 'stopped_groups', 12, 'dead_dedup_keys', 13, 'areas',
            14, 'changed_objects', 15, 'missing_indexes'));
        BEGIN
            verdict = NULL;
            IF (name = 'oldest_transaction') THEN
            BEGIN
                -- An old transaction prevents the cleanup of every message deleted since. The exception is a read-only READ COMMITTED
                -- transaction without READ CONSISTENCY (4), which is the default from 4.0 on. Both times are in the session's time
                -- zone. TRIM: CASE pads its texts with blanks to the length of the longest.
                unit = 'seconds';
                SELECT a.mon$attachment_id, TRIM(a.mon$user), COALESCE(a.mon$remote_process, '?') || ' ' || COALESCE(a.mon$remote_pid, ''),
                    COALESCE(a.mon$remote_address, 'this machine'), CAST(t.mon$timestamp AS timestamp)
                FROM mon$transactions AS t
                JOIN mon$attachments AS a ON a.mon$attachment_id = t.mon$attachment_id
                WHERE a.mon$attachment_id <> CURRENT_CONNECTION AND a.mon$system_flag = 0
                    AND NOT (t.mon$read_only = 1 AND t.mon$isolation_mode IN (2, 3))
                ORDER BY t.mon$timestamp, t.mon$transaction_id
                ROWS 1
                INTO v_attachment, v_user, v_process, v_address, v_oldest;
                measured = CASE
                    WHEN v_attachment IS NOT NULL THEN MAXVALUE(DATEDIFF(MILLISECOND FROM v_oldest TO CAST('NOW' AS timestamp)), 0) / 1e3
                    WHEN v_sees = 1 THEN 0
                END;
                verdict = TRIM(CASE WHEN measured > 3600 THEN 'bad' WHEN measured > 300 OR measured IS NULL THEN 'warn' ELSE 'ok' END);
                detail = CASE
                    WHEN v_attachment IS NOT NULL THEN 'attachment ' || v_attachment || ', user ' || v_user || ', process ' || v_process
                        || ', address ' || v_address || '; while it is open, deleted rows stay; to end it: '
                        || 'DELETE FROM mon$attachments WHERE mon$attachment_id = ' || v_attachment
                    WHEN v_sees = 1 THEN 'no other transaction is open'
                    ELSE CURRENT_USER || ' sees only its own connections, and none is in a transaction: call it as the owner of the database'
                END;
                IF (v_attachment IS NOT NULL AND v_sees = 0) THEN
                    detail = detail || '; connections of other users cannot be seen by ' || CURRENT_USER;
            END
            ELSE IF (name IN ('oldest_active_gap', 'oldest_snapshot_gap')) THEN
            BEGIN
                unit = 'transactions';
                v_oldest_id = IIF(name = 'oldest_active_gap', v_active, v_snapshot);
                measured = v_next - v_oldest_id;
                verdict = TRIM(CASE WHEN measured > 1000000 THEN 'bad' WHEN measured > 100000 THEN 'warn' ELSE 'ok' END);
                detail = 'transactions since the oldest ' || IIF(name = 'oldest_active_gap', 'open one: ', 'snapshot of an open one: ')
                    || v_oldest_id || ' to ' || v_next
                    || TRIM(IIF(verdict = 'ok', '', '; rows deleted since are not cleaned up: end old transactions'));
            END
            ELSE IF (name = 'oldest_interesting_gap') THEN
            BEGIN
                unit = 'transactions';
                measured = v_snapshot - v_interesting;
                verdict = TRIM(CASE WHEN measured > 10000000 THEN 'bad' WHEN measured > 1000000 THEN 'warn' ELSE 'ok' END);
                detail = 'transactions from the oldest interesting one to the oldest snapshot: ' || v_interesting || ' to ' || v_snapshot
                    || TRIM(IIF(verdict = 'ok', '', '; rolled-back transactions are not cleaned up: run gfix -sweep'));
            END
            ELSE IF (name = 'sweep_interval') THEN
            BEGIN
                unit = 'transactions';
                measured = v_sweep;
                verdict = TRIM(IIF(v_sweep = 0, 'warn', 'ok'));
                detail = TRIM(IIF(v_sweep = 0, 'automatic sweep is off: run gfix -sweep every night, and set gfix -housekeeping 20000',
                    'automatic sweep starts when the gap reaches this number'));
            END
            ELSE IF (name = 'forced_writes') THEN
            BEGIN
                unit = 'flag';
                measured = v_forced;
                verdict = TRIM(IIF(v_forced = 1, 'ok', 'bad'));
                detail = TRIM(IIF(v_forced = 1, 'on', 'off: a crash of the machine can corrupt the database; run gfix -write sync'));
            END
            ELSE IF (name = 'page_size') THEN
            BEGIN
                unit = 'bytes';
                measured = v_page;
                verdict = TRIM(IIF(v_page < 8192, 'bad', 'ok'));
                detail = TRIM(IIF(v_page < 8192, 'too small for index keys of the longest names: back up the database and restore it with gbak -page_size 8192',
                    'large enough for index keys of the longest names'));
            END
            ELSE IF (name = 'time_zone' AND RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION') STARTING WITH '3.') THEN
            BEGIN
                unit = 'flag';
                measured = NULL;
                verdict = 'ok';
                detail = 'Firebird 3.0 does not report its time zone; its time is '
                    || SUBSTRING(CAST(mq_utc_now() AS varchar(24)) FROM 1 FOR 16) || '; if that is not UTC, run the server with TZ=UTC';
            END
            ELSE IF (name = 'expired_leases') THEN
            BEGIN
                unit = 'claims';
                v_now = mq_utc_now();
                SELECT COUNT(*), MIN(b.lease_until)
                FROM (SELECT lease_until FROM mq_batch WHERE lease_until <= :v_now ROWS 10000) AS b
                INTO measured, v_oldest;
                verdict = TRIM(CASE
                    WHEN DATEDIFF(SECOND FROM v_oldest TO v_now) > 3600 THEN 'bad'
                    WHEN DATEDIFF(SECOND FROM v_oldest TO v_now) > 60 THEN 'warn'
                    ELSE 'ok'
                END);
                detail = IIF(measured = 0, 'none', 'the oldest expired ' || DATEDIFF(SECOND FROM v_oldest TO v_now)
                    || ' s ago; claims of the type rescue them, or run EXECUTE PROCEDURE mq_rescue_expired');
            END
            ELSE IF (name = 'stuck_groups') THEN
            BEGIN
                unit = 'groups';
                SELECT COUNT(*), MIN(s.type)
                FROM (
                    SELECT q.type
                    FROM (SELECT FIRST 1000 type FROM mq_queue WHERE grouped = 1 AND CHAR_LENGTH(type) > 0) AS q
                    LEFT JOIN imq_stuck_groups(q.type, 1000) AS g ON 1 = 1
                    WHERE g.group_key IS NOT NULL
                    ROWS 1000
                ) AS s
                INTO measured, v_type;
                verdict = TRIM(IIF(measured > 0, 'bad', 'ok'));
                detail = COALESCE('groups of ' || v_type || ' have ready messages that no claim finds; to repair them: '
                    || 'EXECUTE PROCEDURE mq_rescue_expired('''
                    || REPLACE(v_type, '''', '''''') || ''')', 'none');
            END
            ELSE IF (name = 'stopped_groups') THEN
            BEGIN
                unit = 'groups';
                SELECT COUNT(DISTINCT m.type || ASCII_CHAR(10) || m.group_key), MIN(m.id)
                FROM (
                    SELECT e.id FROM (SELECT FIRST 1000 type FROM mq_queue WHERE dead_stops_group = 1) AS q
                    LEFT JOIN mq_dead AS e ON e.type = q.type
                    WHERE e.id IS NOT NULL
                    ROWS 10000
                ) AS k
                LEFT JOIN mq_message AS m ON m.id = k.id
                WHERE m.group_key IS NOT NULL
                INTO measured, v_id;
                verdict = TRIM(IIF(measured > 0, 'warn', 'ok'));
                detail = COALESCE((
                    SELECT 'dead letter ' || m.id || ' stops the group ''' || REPLACE(m.group_key, '''', '''''') || ''' of ' || m.type
                        || '; EXECUTE PROCEDURE mq_redrive(' || m.id || ') retries it, EXECUTE PROCEDURE mq_cancel(' || m.id
                        || ') deletes it'
                    FROM mq_message AS m WHERE m.id = :v_id
                ), 'none');
            END
            ELSE IF (name = 'dead_dedup_keys') THEN
            BEGIN
                unit = 'keys';
                SELECT COUNT(*), MIN(m.id)
                FROM (SELECT e.id FROM mq_dead AS e PLAN (e ORDER mq_dead_pk) ORDER BY e.id ROWS 10000) AS k
                LEFT JOIN mq_message AS m ON m.id = k.id
                WHERE m.dedup_key IS NOT NULL
                INTO measured, v_id;
                verdict = TRIM(IIF(measured > 0, 'warn', 'ok'));
                detail = COALESCE((
                    SELECT 'dead letter ' || m.id || ' of ' || m.type || ' holds the dedup_key ''' || REPLACE(m.dedup_key, '''', '''''')
                        || ''': mq_send_message with this key sends nothing; EXECUTE PROCEDURE mq_redrive('
                        || m.id || ') retries it, EXECUTE PROCEDURE mq_cancel(' || m.id
                        || ') deletes it'
                    FROM mq_message AS m WHERE m.id = :v_id
                ), 'none');
            END
            ELSE IF (name = 'areas') THEN
                FOR SELECT name, verdict, measured, unit, detail FROM imq_area_health INTO name, verdict, measured, unit, detail DO
                BEGIN
                    SUSPEND;
                    verdict = NULL;
                END
            ELSE IF (name = 'changed_objects') THEN
            BEGIN
                unit = 'objects';
                SELECT COUNT(*), LIST(i.name, ', ') FROM imq_installed_files AS i WHERE i.changed = 1 INTO measured, detail;
                verdict = TRIM(IIF(measured > 0, 'bad', 'ok'));
                detail = COALESCE('missing or changed by hand: ' || detail || '; run the installation again',
                    'none');
            END
            ELSE IF (name = 'missing_indexes') THEN
            BEGIN
                unit = 'indexes';
                SELECT COUNT(*), LIST(i.name, ', ')
                FROM mq_installed AS i
                WHERE i.kind = 'index' AND NOT EXISTS (
                    SELECT 1 FROM rdb$indices AS x
                    WHERE x.rdb$index_name = SUBSTRING(i.name FROM POSITION('.', i.name) + 1) AND COALESCE(x.rdb$index_inactive, 0) = 0
                )
                INTO measured, detail;
                verdict = TRIM(IIF(measured > 0, 'bad', 'ok'));
                detail = COALESCE('missing or inactive: ' || detail || '; create it as in the migrations, or ALTER INDEX ... ACTIVE', 'none');
            END
            IF (verdict IS NOT NULL) THEN
                SUSPEND;
        -- One check that fails, such as for a lack of rights, must not hide the others.
        WHEN ANY DO
        BEGIN
            verdict = 'bad';
            measured = NULL;
            unit = '';
            detail = 'this check failed: SQLSTATE ' || SQLSTATE || ', GDSCODE ' || GDSCODE;
            SUSPEND;
        END
        END
    END
END
