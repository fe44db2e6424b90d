-- subscribe: from now on, each such change of the table's rows sends a message of this type.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them), p_type (1 to 200 characters)
-- Returns:     count (subscriptions that are new)
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; what a transaction writes that sees its commit is told: that of a SNAPSHOT which has begun
--              before is not
-- Example:     SELECT * FROM mq_subscribe('stock', 'IU', 'stock.changed');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_subscribe (
    p_table mq_text,
    p_action mq_text,
    p_type mq_argument
)
RETURNS (
    "COUNT" bigint
)
AS
DECLARE v_watched integer;
DECLARE v_actions varchar(3) CHARACTER SET ASCII;
DECLARE v_action varchar(1) CHARACTER SET ASCII;
BEGIN
    EXECUTE PROCEDURE mq_require_actions(p_action, 0);
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    SELECT w.id FROM mq_find_watched(:p_table) AS w INTO v_watched;
    v_actions = p_action;
    "COUNT" = 0;
    WHILE (v_actions <> '') DO
    BEGIN
        v_action = LEFT(v_actions, 1);
        v_actions = SUBSTRING(v_actions FROM 2);
        BEGIN
            INSERT INTO mq_subscription (watched, action, type) VALUES (:v_watched, :v_action, :p_type);
            "COUNT" = "COUNT" + 1;
            WHEN GDSCODE unique_key_violation, GDSCODE no_dup DO
                -- It is there already; one that another transaction has not committed yet may be rolled back.
                IF (NOT EXISTS (
                    SELECT 1 FROM mq_subscription AS s
                    WHERE s.watched = :v_watched AND s.action = :v_action AND s.type = :p_type
                )) THEN
                    EXCEPTION;
        END
    END
    SUSPEND;
END^

SET TERM ; ^
