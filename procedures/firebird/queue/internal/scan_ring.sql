-- scan_ring: the first ready message of a ring in the span of ids where a claim goes on that came short.
-- Arguments:   p_type, p_from and p_until (ids above the one, up to the other), p_after (NULL: none; else ids above this one are
--              scanned as well, for the time that it takes)
-- Returns:     id (NULL: there is none), milliseconds (how long it took)
-- Errors:      none
-- Transaction: reads only
-- Example:     EXECUTE PROCEDURE mq_scan_ring('crawl', 0, 170, NULL) RETURNING_VALUES v_next_id, v_milliseconds;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_scan_ring (
    p_type mq_name,
    p_from bigint,
    p_until bigint,
    p_after bigint
)
RETURNS (
    id bigint,
    milliseconds bigint
)
AS
DECLARE c_long_scan integer = 2;
DECLARE v_begun timestamp;
DECLARE v_tries integer = 1;
BEGIN
    -- What takes long at first, a plan or pages that nobody has read for a while, does not take long again.
    WHILE (v_tries <= 2) DO
    BEGIN
        v_begun = mq_utc_now();
        IF (p_after IS NOT NULL) THEN
            SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type AND r.id > :p_after
            PLAN (r ORDER mq_ready_ring) ORDER BY r.type, r.id ROWS 1
            INTO id;
        id = NULL;
        SELECT r.id FROM mq_ready AS r WHERE r.type = :p_type AND r.id > :p_from AND r.id <= :p_until
        PLAN (r ORDER mq_ready_ring) ORDER BY r.type, r.id ROWS 1
        INTO id;
        milliseconds = DATEDIFF(MILLISECOND FROM v_begun TO mq_utc_now());
        v_tries = IIF(milliseconds < c_long_scan, 3, v_tries + 1);
    END
END^

SET TERM ; ^
