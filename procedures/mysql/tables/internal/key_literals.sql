-- key_literals: write the keys of rows as literals for an IN list.
-- Arguments:   p_columns (a JSON array of [name, class], see polled_shape), p_items (a JSON array of [..., ident]; the
--              second element is read)
-- Returns:     p_literals: '(17),(18)'; NULL when there are none
--
-- Other users may have written p_items, and the result is executed with the caller's rights: it contains only literals.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_key_literals(
    IN p_columns longtext CHARACTER SET utf8mb4, IN p_items longtext CHARACTER SET utf8mb4,
    OUT p_literals longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_count int DEFAULT JSON_LENGTH(p_columns);
    SELECT GROUP_CONCAT(CONCAT('(', t.tuple, ')') ORDER BY t.n) INTO p_literals
    FROM (
        SELECT v.n, GROUP_CONCAT(
            CASE
                WHEN v.class IN ('n', 'u') AND v.value REGEXP '^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$'
                    THEN IF(v.class = 'u', CONCAT('FROM_UNIXTIME(', v.value, ')'), v.value)
                WHEN v.class = 'd' AND v.value REGEXP '^[-0-9 :.]+$' THEN CONCAT('''', v.value, '''')
                WHEN v.class IN ('x', 't') AND v.value REGEXP '^([0-9A-F][0-9A-F])*$'
                    THEN CONCAT(IF(v.class = 't', '_utf8mb4 ', ''), 'x''', v.value, '''')
                ELSE 'NULL'
            END ORDER BY v.k) AS tuple
        FROM (
            SELECT i.n, c.k, c.class, IF(v_count = 1, i.ident,
                SUBSTRING_INDEX(SUBSTRING_INDEX(i.ident, ',', c.k), ',', -1)) AS value
            FROM JSON_TABLE(p_columns, '$[*]' COLUMNS (k FOR ORDINALITY, class varchar(1) CHARACTER SET utf8mb4 PATH '$[1]')) AS c
            STRAIGHT_JOIN JSON_TABLE(p_items, '$[*]' COLUMNS (n FOR ORDINALITY,
                ident longtext CHARACTER SET utf8mb4 PATH '$[1]')) AS i
        ) AS v
        GROUP BY v.n
    ) AS t;
END
