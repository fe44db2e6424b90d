-- lower_mark: what was put back lies below the low-water mark: the next claim makes a full scan.
-- Arguments:   p_type
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lower_mark('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lower_mark (
    p_type mq_name
)
AS
DECLARE v_n bigint;
BEGIN
    SELECT n FROM mq_mark WHERE type = :p_type ORDER BY type DESC, n DESC ROWS 1 INTO v_n;
    IF (v_n IS NOT NULL) THEN
        -- Two higher, so that it also counts over the mark that a claim at work at this moment will leave.
        INSERT INTO mq_mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (:p_type, :v_n + 2, -32768, '1900-01-01', 0, '1900-01-01', '1900-01-01');
END^

SET TERM ; ^
