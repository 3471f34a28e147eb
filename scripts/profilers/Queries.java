import java.sql.*;
/** Tables in memory, filled, joined and sorted by one thread. */
public class Queries {
    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection("jdbc:h2:mem:")) {
            Statement s = c.createStatement();
            s.execute("create table person(id int primary key, name varchar, city int)");
            s.execute("create table city(id int primary key, name varchar)");
            for (int i = 0; i < 200; i++) s.execute("insert into city values(" + i + ", 'city " + i * 7919 % 200 + "')");
            PreparedStatement insert = c.prepareStatement("insert into person values(?, ?, ?)");
            for (int i = 0; i < 60000; i++) {
                insert.setInt(1, i); insert.setString(2, "name " + i * 7919L % 60000); insert.setInt(3, i % 200); insert.execute();
            }
            long rows = 0;
            for (int i = 0; i < Integer.parseInt(args[0]); i++) {
                ResultSet r = s.executeQuery("select c.name, count(*), max(p.name) from person p join city c on p.city = c.id "
                    + "where p.name like '%" + i % 10 + "%' group by c.name order by 2 desc, 1");
                while (r.next()) rows++;
            }
            System.out.println(rows);
        }
    }
}
