-- set_lanes: refuse to make a queue fair, or fair no more. The area ring replaces this.
CREATE OR ALTER PROCEDURE imq_set_lanes (p_type mq_name, p_fair smallint, p_size integer)
AS
BEGIN
    EXECUTE PROCEDURE imq_require_area('fair');
END
