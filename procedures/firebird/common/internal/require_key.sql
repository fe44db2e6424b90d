-- require_key: refuse a text that is not a batch key.
CREATE OR ALTER PROCEDURE imq_require_key (p_batch_key mq_argument)
AS
DECLARE v_key char(16) CHARACTER SET OCTETS;
BEGIN
    -- Reading it costs a tenth of comparing it with a pattern.
    v_key = IIF(CHAR_LENGTH(p_batch_key) = 36, CHAR_TO_UUID(p_batch_key), CHAR_TO_UUID('no key'));
    WHEN ANY DO
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', TRIM(IIF(p_batch_key IS NULL, 'batch_key: must not be NULL',
            'batch_key: must be a batch key that a claim returned')));
END
