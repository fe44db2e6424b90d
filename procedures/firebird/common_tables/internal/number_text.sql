-- number_text: the shortest decimal text that reads back as the same floating point number, for JSON.
-- Arguments:   p_number, p_single (1: it is a FLOAT)
-- Returns:     the text; NULL for NULL; infinities and NaN between bytes FE, the quotes of escape_json
--
-- The engine writes 16 digits, but 17 may be needed. This function scales the number to 18 digits before the point, as a
-- sum of two numbers: the product and its error by T. J. Dekker's method (Numerische Mathematik 18, 1971). Then it keeps
-- the digits that distinguish the number from its neighbours.
CREATE OR ALTER FUNCTION imq_number_text (p_number double precision, p_single smallint)
RETURNS varchar(40) CHARACTER SET OCTETS
AS
DECLARE v_text varchar(40) CHARACTER SET ASCII;
DECLARE v_high double precision; DECLARE v_low double precision; DECLARE v_power double precision;
DECLARE v_factor double precision; DECLARE v_quotient double precision; DECLARE v_product double precision;
DECLARE v_a double precision; DECLARE v_b double precision; DECLARE v_error double precision;
DECLARE v_room double precision; DECLARE v_rest double precision;
DECLARE v_exponent integer; DECLARE v_left integer; DECLARE v_step integer;
DECLARE v_whole bigint; DECLARE v_cut bigint; DECLARE v_unit bigint;
BEGIN
    IF (p_number IS NULL) THEN
        RETURN NULL;
    v_text = p_number;
    IF (UPPER(v_text) CONTAINING 'N') THEN
        RETURN x'FE' || TRIM(CASE
            WHEN UPPER(v_text) CONTAINING 'NAN' THEN 'NaN'
            WHEN v_text STARTING WITH '-' THEN '-Infinity'
            ELSE 'Infinity'
        END) || x'FE';
    IF (ABS(p_number) < 1e15 AND p_number = FLOOR(p_number)) THEN
        RETURN CAST(p_number AS bigint);

    v_high = ABS(p_number);
    v_low = 0;
    -- The greatest power of two that is not above the number; it determines the distance to the next number.
    v_power = POWER(2e0, MINVALUE(FLOOR(LOG(2, v_high)), 1023));
    IF (v_power > v_high) THEN
        v_power = v_power / 2;
    ELSE IF (v_power <= v_high / 2) THEN
        v_power = v_power * 2;
    v_room = v_power / v_high * IIF(v_power = v_high, 0.5e0, 1e0) / IIF(p_single = 1, 16777216e0, 9007199254740992e0);
    v_exponent = FLOOR(LOG10(v_high));
    v_left = 17 - v_exponent;
    WHILE (v_left <> 0) DO
    BEGIN
        v_step = MINVALUE(ABS(v_left), 16);
        -- Exact up to 10 to the power of 22.
        v_factor = POWER(10e0, v_step);
        IF (v_high > 1e300) THEN
        BEGIN
            -- Scale both by a power of two, which is exact: otherwise a product could overflow.
            v_high = v_high / 1024;
            v_factor = v_factor / 1024;
        END
        v_quotient = IIF(v_left > 0, v_high, v_high / v_factor);
        v_product = v_quotient * v_factor;
        -- The error of v_quotient * v_factor, from the exact products of the halves.
        v_a = 134217729e0 * v_quotient;
        v_a = v_a - (v_a - v_quotient);
        v_b = 134217729e0 * v_factor;
        v_b = v_b - (v_b - v_factor);
        v_error = v_a * v_b - v_product + v_a * (v_factor - v_b) + (v_quotient - v_a) * v_b
            + (v_quotient - v_a) * (v_factor - v_b);
        IF (v_left > 0) THEN
        BEGIN
            v_low = v_low * v_factor + v_error;
            v_high = v_product;
            v_left = v_left - v_step;
        END
        ELSE
        BEGIN
            v_low = (v_high - v_product - v_error + v_low) / v_factor;
            v_high = v_quotient;
            v_left = v_left + v_step;
        END
        v_product = v_high + v_low;
        v_low = v_low - (v_product - v_high);
        v_high = v_product;
    END
    v_whole = CAST(v_high AS bigint) + CAST(v_low AS bigint);
    v_rest = v_low - CAST(v_low AS bigint);
    v_step = IIF(p_single = 1, 6, 15);
    v_unit = 1;
    WHILE (v_step < CHAR_LENGTH(CAST(v_whole AS varchar(20)))) DO
    BEGIN
        v_unit = v_unit * 10;
        v_step = v_step + 1;
    END
    v_cut = (v_whole + v_unit / 2) / v_unit * v_unit;
    WHILE (v_unit > 1 AND ABS(v_cut - v_whole - v_rest) + 0.01e0 >= v_room * v_whole) DO
    BEGIN
        v_unit = v_unit / 10;
        v_cut = (v_whole + v_unit / 2) / v_unit * v_unit;
    END
    v_text = v_cut;
    v_exponent = v_exponent + CHAR_LENGTH(v_text) - 18;
    v_text = TRIM(TRAILING '0' FROM v_text);
    v_left = CHAR_LENGTH(v_text);
    RETURN TRIM(IIF(p_number < 0, '-', '')) || CASE
        WHEN v_exponent BETWEEN v_left - 1 AND 14 THEN RPAD(v_text, v_exponent + 1, '0')
        WHEN v_exponent BETWEEN 0 AND 14 THEN LEFT(v_text, v_exponent + 1) || '.' || SUBSTRING(v_text FROM v_exponent + 2)
        WHEN v_exponent BETWEEN -5 AND -1 THEN '0.' || LPAD('', -v_exponent - 1, '0') || v_text
        WHEN v_left = 1 THEN v_text || 'e' || v_exponent
        ELSE LEFT(v_text, 1) || '.' || SUBSTRING(v_text FROM 2) || 'e' || v_exponent
    END;
END
