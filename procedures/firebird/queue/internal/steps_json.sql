-- steps_json: the steps of a message as the column steps of the archive holds them: a JSON array of objects with step, value
--             and saved_at; NULL for a message without steps.
CREATE OR ALTER FUNCTION imq_steps_json (p_id bigint)
RETURNS mq_text
AS
BEGIN
    RETURN (
        SELECT '[' || LIST(s.piece, ',') || ']'
        FROM (
            SELECT '{"step":' || imq_escape_json(x'FE' || CAST(step AS varchar(800) CHARACTER SET OCTETS) || x'FE')
                || ',"value":' || COALESCE(imq_escape_json(x'FE' || CAST(step_value AS blob SUB_TYPE TEXT CHARACTER SET OCTETS) || x'FE'), 'null')
                || ',"saved_at":"' || REPLACE(CAST(saved_at AS varchar(24)), ' ', 'T') || '00Z"}' AS piece
            FROM mq_step WHERE id = :p_id
            ORDER BY n
        ) AS s
    );
END
