-- require_area: refuse a setting, or a claim that follows it, while the area of the same name is not installed.
CREATE OR REPLACE FUNCTION mq_internal.require_area(p_area text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- An area gets its hash when all its files are installed.
    IF NOT EXISTS (SELECT FROM mq.installed WHERE name = p_area AND kind = 'area' AND sha256 <> '') THEN
        PERFORM mq_internal.raise_error('area_missing',
            format('%1$s: the area %1$s is not installed here: `runner apply --areas %1$s` adds it', p_area));
    END IF;
END
$$;
