-- object_fingerprint: a hash of an object's definition in the catalog, to detect changes made by hand.
-- Arguments:   p_name (a procedure, function or view, without mq_ or imq_)
-- Returns:     two 64-bit numbers, for the body and for the parameters; NULL when there is no such object
--
-- HASH() is not cryptographic: it detects accidental changes, not deliberate forgery.
CREATE OR ALTER FUNCTION imq_object_fingerprint (p_name mq_name)
RETURNS varchar(64) CHARACTER SET ASCII
AS
DECLARE v_name varchar(210) CHARACTER SET UTF8;
DECLARE v_source mq_text; DECLARE v_parameters mq_text;
BEGIN
    -- A procedure or function has one of the two prefixes, a view the first.
    SELECT FIRST 1 o.name, o.source
    FROM (
        SELECT rdb$procedure_name AS name, rdb$procedure_source AS source FROM rdb$procedures
        WHERE rdb$procedure_name IN (UPPER('mq_' || :p_name), UPPER('imq_' || :p_name)) AND rdb$package_name IS NULL
        UNION ALL
        SELECT rdb$function_name, rdb$function_source FROM rdb$functions
        WHERE rdb$function_name IN (UPPER('mq_' || :p_name), UPPER('imq_' || :p_name)) AND rdb$package_name IS NULL
    ) AS o
    INTO v_name, v_source;
    v_name = COALESCE(v_name, UPPER('mq_' || p_name));
    IF (v_source IS NULL) THEN
        SELECT rdb$view_source FROM rdb$relations WHERE rdb$relation_name = :v_name INTO v_source;
    IF (v_source IS NULL) THEN
        RETURN NULL;
    -- The type comes from the domain's definition: a generated domain name can change, and gbak writes 0 instead of NULL.
    SELECT LIST(p.line, ';')
    FROM (
        SELECT TRIM(a.name) || ' ' || a.kind || ' ' || a.place || ' ' || COALESCE(f.rdb$field_type, '') || ' '
            || COALESCE(f.rdb$field_sub_type, 0) || ' ' || COALESCE(f.rdb$field_length, '') || ' '
            || COALESCE(f.rdb$character_set_id, 0) AS line
        FROM (
            SELECT rdb$parameter_name AS name, rdb$parameter_type AS kind, rdb$parameter_number AS place,
                rdb$field_source AS field
            FROM rdb$procedure_parameters
            WHERE rdb$procedure_name = :v_name AND rdb$package_name IS NULL
            UNION ALL
            SELECT COALESCE(rdb$argument_name, ''), 0, rdb$argument_position, rdb$field_source
            FROM rdb$function_arguments
            WHERE rdb$function_name = :v_name AND rdb$package_name IS NULL
            UNION ALL
            SELECT rdb$field_name, 1, rdb$field_position, rdb$field_source
            FROM rdb$relation_fields
            WHERE rdb$relation_name = :v_name
        ) AS a
        LEFT JOIN rdb$fields AS f ON f.rdb$field_name = a.field
        ORDER BY a.kind, a.place, a.name
    ) AS p
    INTO v_parameters;
    RETURN HASH(v_source) || ' ' || COALESCE(HASH(v_parameters), 0);
END
