-- pick_fair: refuse a claim of a fair queue. The area fair replaces this.
CREATE OR ALTER PROCEDURE imq_pick_fair (p_type mq_name, p_size integer, p_grouped smallint, p_take smallint)
RETURNS (id bigint, attempt smallint, n integer)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_area('fair');
    IF (1 = 0) THEN
        SUSPEND; -- or the procedure could not be selected from
END
