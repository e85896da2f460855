import static java.nio.charset.StandardCharsets.UTF_8;
import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.*;

/** A subject logs in some times: Login HOST PORT SCRIPT TIMEOUT_MS SUBJECT TIMES. The limit is that of examples/login.yaml. */
public class Login {
    public static void main(String[] args) throws Exception {
        String script = Files.readString(Path.of(args[2]));
        String sha = HexFormat.of().formatHex(java.security.MessageDigest.getInstance("SHA-1").digest(script.getBytes(UTF_8)));
        int timeout = Integer.parseInt(args[3]);
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(args[0], Integer.parseInt(args[1])), timeout);
            socket.setSoTimeout(timeout);
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
            var params = List.of("12000000", "1", "10");
            var login = new Sluice(in, socket.getOutputStream(), script, sha, "login", "token_bucket", params);
            for (int i = 0; i < Integer.parseInt(args[5]); i++) {
                long[] reply = login.take(args[4], 1);
                boolean allowed = reply[0] == 1;
                System.out.println(allowed ? "allowed, " + reply[1] + " remaining" : "refused, retry after " + reply[2] + " ms");
            }
        }
    }
}
