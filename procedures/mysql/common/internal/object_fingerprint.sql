-- object_fingerprint: a hash of each object's definition in the catalog, to detect changes made by hand.
-- Returns:     p_fingerprints: a JSON array of [name without mq_ or imq_, 64 hexadecimal digits]
--
-- It runs with the rights of mq_owner, because the catalog shows a body only to its definer and not to an account that
-- can only install.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_object_fingerprint(
    OUT p_fingerprints longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- By default MySQL cuts the list at 1,024 characters.
    IF @@SESSION.group_concat_max_len < 4194304 THEN
        SET SESSION group_concat_max_len = 4194304;
    END IF;
    SELECT CONCAT('[', GROUP_CONCAT('["', SUBSTRING(o.name, LOCATE('_', o.name) + 1), '","', SHA2(o.definition, 256), '"]'), ']')
    INTO p_fingerprints
    FROM (
        SELECT r.routine_name AS name, CONCAT_WS('\n', r.definer, r.security_type, r.sql_data_access, r.sql_mode, p.list,
            r.routine_definition) AS definition
        FROM information_schema.routines AS r
        LEFT JOIN (
            SELECT specific_name, GROUP_CONCAT(parameter_mode, ' ', parameter_name, ' ', dtd_identifier
                ORDER BY ordinal_position) AS list
            FROM information_schema.parameters
            WHERE specific_schema = DATABASE() AND routine_type = 'PROCEDURE'
            GROUP BY specific_name
        ) AS p ON p.specific_name = r.routine_name
        WHERE r.routine_schema = DATABASE() AND r.routine_type = 'PROCEDURE' AND (r.routine_name LIKE 'mq\_%' OR r.routine_name LIKE 'imq\_%')
        UNION ALL
        SELECT table_name, CONCAT_WS('\n', definer, security_type, view_definition)
        FROM information_schema.views
        WHERE table_schema = DATABASE() AND table_name LIKE 'mq\_%'
    ) AS o;
END
