-- require_actions: refuse an action that is not one or more of the letters I, U and D, each once.
-- Arguments:   p_action, p_optional (1: NULL is allowed)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_actions(
    IN p_action longtext CHARACTER SET utf8mb4, IN p_optional tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Compare bytes: a collation may ignore case and trailing blanks.
    IF NOT COALESCE(CAST(p_action AS binary) IN ('I', 'U', 'D', 'IU', 'UI', 'ID', 'DI', 'UD', 'DU', 'IUD', 'IDU', 'UID', 'UDI',
        'DIU', 'DUI'), p_optional) THEN
        CALL imq_raise_error('invalid_argument', 'action: must be I, U or D (insert, update, delete), or several of them');
    END IF;
END
