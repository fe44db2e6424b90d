-- require_key: refuse a text that is no batch key.
-- Arguments:   p_batch_key
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     EXECUTE PROCEDURE mq_require_key('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_require_key (
    p_batch_key mq_argument
)
AS
BEGIN
    IF (p_batch_key IS NULL) THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'batch_key: must not be NULL');
    ELSE IF (p_batch_key NOT SIMILAR TO '[0-9A-Fa-f]{8}(\-[0-9A-Fa-f]{4}){3}\-[0-9A-Fa-f]{12}' ESCAPE '\') THEN
        EXECUTE PROCEDURE mq_raise_error('invalid_argument', 'batch_key: must be a key as a claim returns it');
END^

SET TERM ; ^
