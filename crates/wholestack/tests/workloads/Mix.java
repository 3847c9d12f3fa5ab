import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Arithmetic, hashing, strings, sorting and garbage. */
public class Mix {
    static long spin(long x) {
        for (int i = 0; i < 3000; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    public static void main(String[] arguments) {
        int rounds = Integer.parseInt(arguments[0]);
        long sum = 1;
        Map<String, Integer> counts = new HashMap<>();
        List<String> names = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < 100; i++) sum ^= spin(sum + i);
            for (int i = 0; i < 2000; i++) counts.merge("k" + i * round % 5000, 1, Integer::sum);
            names.clear();
            for (String name : counts.keySet()) names.add(name + round);
            Collections.sort(names);
            sum += names.get(0).hashCode();
        }
        System.out.println(sum);
    }
}
