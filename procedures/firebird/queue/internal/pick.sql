-- pick: take up to p_size ready messages of a type out of the ready table, in claim order; expired claims are rescued
--       and due messages promoted on the way.
-- Arguments:   p_type, p_size, p_ordered (the policy), p_take (1: the caller's transaction may be long: see pick_ordered)
-- Returns:     id and attempt (the number of this attempt)
-- Errors:      none
-- Transaction: joins the caller's, which is NO WAIT; the caller fetches all rows
-- Example:     FOR SELECT id, attempt FROM mq_pick('email', 10, 0, 0) INTO v_id, v_attempt DO ...
--
-- Low-water marks. While a transaction with a snapshot is open, nothing that is deleted can be cleaned up, and a claim that
-- begins at the front of the index walks every message done since. So a claim begins where the claims before it began to find
-- something, one place for each priority, kept in mq_mark. Rows may appear below a mark: a transaction that commits late, a
-- take that rolls back. So no claim begins later than one second ago, for senders that are about to commit, and the first
-- claim of every second looks from the very start, and so does the one after a claim that came back short; after a look that
-- took long, where the dead are many, the next one waits ten times as long, at most 5 seconds. What is put back on purpose
-- calls lower_mark.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_pick (
    p_type mq_name,
    p_size integer,
    p_ordered smallint,
    p_take smallint
)
RETURNS (
    id bigint,
    attempt smallint
)
AS
-- A mark is renewed when the front has moved by so many ids.
DECLARE c_stride integer = 1000;
-- Priorities beyond the first eight are claimed without marks.
DECLARE c_marks integer = 8;
DECLARE c_long_ago timestamp = '1900-01-01';
DECLARE v_now timestamp;
DECLARE v_n bigint;
DECLARE v_looked_at timestamp;
DECLARE v_promoted_to timestamp;
DECLARE v_full smallint = 1;
DECLARE v_write smallint = 0;
DECLARE v_learn smallint = 0;
DECLARE v_known integer = 0;
DECLARE v_left integer;
DECLARE v_begun timestamp;
DECLARE v_walked integer;
DECLARE v_promote integer;
DECLARE v_moved integer;
DECLARE v_all_promoted smallint = 1;
DECLARE v_due timestamp;
DECLARE v_rescued bigint;
DECLARE v_above integer = -32769;
DECLARE v_priority smallint;
DECLARE v_run_at timestamp;
DECLARE v_id bigint;
DECLARE v_from timestamp;
DECLARE v_first smallint;
DECLARE v_found_priority smallint;
DECLARE v_found_run_at timestamp;
-- The new places: five characters for the priority + 32768, 24 for the time, 19 for the id.
DECLARE v_places varchar(400) CHARACTER SET ASCII = '';
DECLARE i integer = 0;
BEGIN
    v_now = mq_utc_now();
    v_left = p_size;
    SELECT n FROM mq_mark WHERE type = :p_type ORDER BY type DESC, n DESC ROWS 1 INTO v_n;
    IF (v_n IS NOT NULL) THEN
    BEGIN
        SELECT MIN(looked_at), MIN(promoted_to), COUNT(*) FROM mq_mark WHERE type = :p_type AND n = :v_n
        INTO v_looked_at, v_promoted_to, v_known;
        -- The time of a scan may lie ahead by 5 seconds; by more, or with what was promoted ahead, the clock was set back.
        IF (v_now BETWEEN DATEADD(-6 SECOND TO v_looked_at) AND DATEADD(1 SECOND TO v_looked_at) AND v_promoted_to <= v_now) THEN
            v_full = 0;
    END

    IF (v_full = 1) THEN
    BEGIN
        IF (EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= :v_now)) THEN
            EXECUTE PROCEDURE mq_rescue(p_type, IIF(p_take = 1, 1, 20)) RETURNING_VALUES v_rescued;
        v_promoted_to = c_long_ago;
    END
    IF (EXISTS (SELECT * FROM mq_delayed WHERE type = :p_type AND run_at > :v_promoted_to AND run_at <= :v_now)) THEN
    BEGIN
        -- What a take promotes stays hidden from others until its commit: no more than it may want itself.
        v_promote = IIF(p_take = 1, p_size, MAXVALUE(2 * p_size, 100));
        EXECUTE PROCEDURE mq_promote(p_type, v_promoted_to, v_now, v_promote, p_ordered) RETURNING_VALUES v_moved, v_due;
        v_all_promoted = IIF(v_moved < v_promote, 1, 0);
    END

    IF (p_ordered = 1) THEN
    BEGIN
        FOR SELECT id, attempt FROM mq_pick_ordered(:p_type, :p_size, :p_take) INTO id, attempt DO
        BEGIN
            v_write = v_full;
            SUSPEND;
        END
        IF (v_write = 1) THEN
            INSERT INTO mq_mark (type, n, priority, run_at, id, looked_at, promoted_to)
            VALUES (:p_type, COALESCE(:v_n, 0) + 1, 0, :c_long_ago, 0, :v_now, :c_long_ago);
    END
    ELSE
    BEGIN
        -- Known priorities begin at their marks, the gaps between them at their start; a full look is one wide gap.
        IF (v_full = 0) THEN
            FOR SELECT priority, run_at, id
                FROM mq_mark
                WHERE type = :p_type AND n = :v_n
                ORDER BY priority, run_at, id
                INTO v_priority, v_run_at, v_id
            DO
                -- Two claims may have left marks of one number: the first place of a priority counts.
                IF (v_priority > v_above) THEN
                BEGIN
                    IF (v_left > 0 AND v_priority - v_above > 1) THEN
                        FOR SELECT id, attempt
                            FROM mq_take_ready(:p_type, :v_above, :v_priority, NULL, NULL, :v_left, 1)
                            INTO id, attempt
                        DO
                        BEGIN
                            -- A priority that has no mark yet gets one from the full look of the next claim.
                            v_learn = IIF(v_known < c_marks, 1, 0);
                            v_left = v_left - 1;
                            SUSPEND;
                        END
                    IF (v_due < v_run_at) THEN
                    BEGIN
                        v_run_at = v_due;
                        v_id = 0;
                        v_write = 1;
                    END
                    IF (v_left > 0) THEN
                    BEGIN
                        v_from = MINVALUE(v_run_at, DATEADD(-1 SECOND TO v_now));
                        v_first = 1;
                        FOR SELECT id, attempt, run_at
                            FROM mq_take_ready(:p_type, NULL, :v_priority, :v_from,
                                IIF(:v_from = :v_run_at, :v_id, 0), :v_left, 1)
                            INTO id, attempt, v_found_run_at
                        DO
                        BEGIN
                            IF (v_first = 1) THEN
                            BEGIN
                                IF (id NOT BETWEEN v_id - c_stride AND v_id + c_stride) THEN
                                    v_write = 1;
                                v_run_at = v_found_run_at;
                                v_id = id;
                                v_first = 0;
                            END
                            v_left = v_left - 1;
                            SUSPEND;
                        END
                    END
                    v_places = v_places || LPAD(v_priority + 32768, 5, '0') || v_run_at || LPAD(v_id, 19, '0');
                    v_above = v_priority;
                END
        v_begun = mq_utc_now();
        IF (v_left > 0) THEN
            FOR SELECT id, attempt, priority, run_at
                FROM mq_take_ready(:p_type, :v_above, 32768, NULL, NULL, :v_left, 1 - :v_full)
                INTO id, attempt, v_found_priority, v_found_run_at
            DO
            BEGIN
                IF (v_walked IS NULL) THEN
                    v_walked = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
                IF (v_full = 0) THEN
                    v_learn = IIF(v_known < c_marks, 1, v_learn);
                ELSE
                BEGIN
                    v_write = 1;
                    IF (v_found_priority > v_above AND CHAR_LENGTH(v_places) < 48 * c_marks) THEN
                        v_places = v_places || LPAD(v_found_priority + 32768, 5, '0') || v_found_run_at || LPAD(id, 19, '0');
                    v_above = v_found_priority;
                END
                v_left = v_left - 1;
                SUSPEND;
            END

        IF (v_full = 0 AND v_left = p_size) THEN
        BEGIN
            -- That there is nothing only a look from the very start can say: the engine may have begun another claim again, and
            -- what it had before lies behind.
            FOR SELECT id, attempt FROM mq_take_ready(:p_type, -32769, 32768, NULL, NULL, :v_left, 0) INTO id, attempt DO
            BEGIN
                v_learn = 1;
                v_left = v_left - 1;
                SUSPEND;
            END
            v_walked = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
            IF (v_left = p_size AND v_walked > 5) THEN
            BEGIN
                v_looked_at = DATEADD(MINVALUE(10 * v_walked, 5000) MILLISECOND TO v_now);
                v_write = 1;
            END
        END
        v_walked = COALESCE(v_walked, DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now()));
        -- Short of messages: what was left behind, by a claim that the engine began again or that was rolled back, is to be
        -- found now and not in a second.
        IF (v_full = 0 AND v_left > 0 AND v_now > DATEADD(20 MILLISECOND TO v_looked_at)) THEN
            v_learn = 1;
        IF (v_full = 1 AND v_n IS NOT NULL) THEN
        BEGIN
            IF (v_write = 1) THEN
            BEGIN
                -- Priorities of which nothing was found keep their marks.
                v_above = -32769;
                FOR SELECT priority, run_at, id
                    FROM mq_mark
                    WHERE type = :p_type AND n = :v_n
                    ORDER BY priority, run_at, id
                    INTO v_priority, v_run_at, v_id
                DO
                BEGIN
                    i = 0;
                    WHILE (i < CHAR_LENGTH(v_places)
                        AND SUBSTRING(v_places FROM i + 1 FOR 5) <> LPAD(v_priority + 32768, 5, '0')) DO
                        i = i + 48;
                    IF (i = CHAR_LENGTH(v_places) AND i < 48 * c_marks) THEN
                        v_places = v_places || LPAD(v_priority + 32768, 5, '0') || v_run_at || LPAD(v_id, 19, '0');
                END
            END
            ELSE IF (v_left = p_size AND v_walked > 5) THEN
            BEGIN
                -- Nothing there but many dead rows to walk: idle consumers need not do it all the time.
                FOR SELECT DISTINCT priority FROM mq_mark WHERE type = :p_type AND n = :v_n INTO v_priority DO
                    v_places = v_places || LPAD(v_priority + 32768, 5, '0') || v_now || LPAD(0, 19, '0');
                v_write = 1;
            END
        END
        IF (v_write = 1 OR v_learn = 1) THEN
        BEGIN
            v_looked_at = CASE
                WHEN v_learn = 1 THEN c_long_ago
                WHEN v_full = 1 THEN DATEADD(MINVALUE(10 * v_walked, 5000) MILLISECOND TO v_now)
                ELSE v_looked_at
            END;
            i = 1;
            WHILE (i < CHAR_LENGTH(v_places)) DO
            BEGIN
                INSERT INTO mq_mark (type, n, priority, run_at, id, looked_at, promoted_to)
                VALUES (:p_type, COALESCE(:v_n, 0) + 1, CAST(SUBSTRING(:v_places FROM :i FOR 5) AS integer) - 32768,
                    CAST(SUBSTRING(:v_places FROM :i + 5 FOR 24) AS timestamp),
                    CAST(SUBSTRING(:v_places FROM :i + 29 FOR 19) AS bigint),
                    :v_looked_at, IIF(:v_all_promoted = 1, :v_now, :c_long_ago));
                i = i + 48;
            END
        END
    END

    IF (v_write = 1 AND v_full = 1 AND v_n IS NOT NULL) THEN
        EXECUTE PROCEDURE mq_drop_marks(p_type, v_n);
END^

SET TERM ; ^
