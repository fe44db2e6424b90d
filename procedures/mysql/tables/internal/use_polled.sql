-- use_polled: refuse a caller without the rights that an action on a polling table needs.
-- Arguments:   p_name, p_action (read, claim, or change: an operator's change)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_use_polled(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_action varchar(6) CHARACTER SET ascii
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_maker varchar(128) CHARACTER SET utf8mb4;
    DECLARE v_rights varchar(40) CHARACTER SET utf8mb4;
    SELECT IF(table_schema = '', DATABASE(), table_schema), table_name, adopted_by,
        CONCAT('Select', IF(p_action <> 'read' AND status_column IS NOT NULL, ',Update', ''),
            IF(p_action <> 'read' AND on_complete = 'delete', ',Delete', ''))
    INTO v_schema, v_table, v_maker, v_rights
    FROM mq_polled WHERE name = p_name;
    IF v_table IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT('name: no table is adopted as ', LEFT(p_name, 80)));
    END IF;
    CALL imq_require_use(v_schema, v_table, v_rights, v_maker);
END
