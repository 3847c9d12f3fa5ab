create table t(a integer, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
  insert into t select i * 7919 % 100003, hex(i), i * 0.5 from n;
create index x on t(b);
select count(*), sum(c) from t where b like '%3%';
select a % 10, length(group_concat(b)) from t where a % 50 = 1 group by 1 order by 2 limit 3;
select count(*) from t t1 join t t2 on t1.a = t2.a + 1 where t1.a < 3000;
