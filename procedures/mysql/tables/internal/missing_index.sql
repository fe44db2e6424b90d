-- missing_index: raise the error that contains the CREATE INDEX which a polling table needs again.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_missing_index(IN p_table longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_label, v_claim_index, v_key_index varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_columns, v_keys longtext CHARACTER SET utf8mb4;
    DECLARE v_of_schema, v_of_table varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_there int;
    SELECT s.schema_, s.table_, s.label, s.claim_index, s.key_index, k.keys_,
        CONCAT_WS(', ', CONCAT('`', s.status_, '`'), COALESCE(CONCAT('`', s.order_, '`'), k.keys_))
    INTO v_schema, v_table, v_label, v_claim_index, v_key_index, v_keys, v_columns
    FROM JSON_TABLE(p_table, '$' COLUMNS (schema_ varchar(64) CHARACTER SET utf8mb4 PATH '$.schema',
        table_ varchar(64) CHARACTER SET utf8mb4 PATH '$.table', label varchar(200) CHARACTER SET utf8mb4 PATH '$.label',
        claim_index varchar(64) CHARACTER SET utf8mb4 PATH '$.claim_index',
            key_index varchar(64) CHARACTER SET utf8mb4 PATH '$.key_index',
        status_ varchar(64) CHARACTER SET utf8mb4 PATH '$.status', order_ varchar(64) CHARACTER SET utf8mb4 PATH '$.order',
        keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys')) AS s
    JOIN (
        SELECT GROUP_CONCAT('`', j.name, '`' ORDER BY j.n SEPARATOR ', ') AS keys_
        FROM JSON_TABLE(COALESCE(JSON_UNQUOTE(JSON_EXTRACT(p_table, '$.keys')), '[]'), '$[*]' COLUMNS (n FOR ORDINALITY,
            name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j
    ) AS k;
    SET v_of_schema = v_schema, v_of_table = v_table;
    SELECT COUNT(*) INTO v_there
    FROM information_schema.statistics AS s
    WHERE s.table_schema = v_of_schema AND s.table_name = v_of_table
        AND CAST(CONVERT(s.index_name USING utf8mb4) AS binary) = CAST(v_claim_index AS binary);
    IF v_claim_index IS NOT NULL AND v_there = 0 THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('needs: CREATE INDEX `', LEFT(v_claim_index, 30), '` ON ',
            LEFT(v_label, 40), ' (', v_columns, ')'));
    END IF;
    CALL imq_raise_error('unsuitable_table', CONCAT('needs: CREATE UNIQUE INDEX `', LEFT(v_key_index, 30), '` ON ',
        LEFT(v_label, 40), ' (', v_keys, ')'));
END
