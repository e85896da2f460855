import static java.nio.charset.StandardCharsets.UTF_8;
import java.io.*;
import java.util.*;

/** One budget with every Sluice process, over a socket's streams. One thread at a time; after an exception, make another. */
public record Sluice(BufferedReader in, OutputStream out, String script, String sha, String rule, String algorithm, List<String> params) {
    /** Charges n: {allowed, remaining, retry_after_ms, reset_after_ms}. An IOException: Redis could not decide. */
    public long[] take(String subject, long n) throws Exception {
        return call("EVALSHA", sha, "sluice:{" + part(subject) + "}:" + part(rule) + ":" + algorithm, "" + n);
    }
    private long[] call(String command, String text, String key, String n) throws IOException {
        var words = java.util.stream.Stream.concat(List.of(command, text, "1", key, "", n).stream(), params.stream())
            .map(w -> "$" + w.getBytes(UTF_8).length + "\r\n" + w + "\r\n").toList();
        out.write(("*" + words.size() + "\r\n" + String.join("", words)).getBytes(UTF_8));
        String reply = "";
        for (int c, lines = 0; lines < (reply.startsWith("*4") ? 5 : 1) && (c = in.read()) >= 0; lines += c == '\n' ? 1 : 0)
            reply += (char) c; // readLine would take half a number for a line, where the reply is cut off
        if (command.equals("EVALSHA") && reply.startsWith("-NOSCRIPT")) return call("EVAL", script, key, n); // not executed
        if (!reply.matches("\\*4\r\n(:-?\\d{1,18}\r\n){4}")) throw new IOException("Redis: " + reply.strip());
        return Arrays.stream(reply.strip().split("\r\n:")).skip(1).mapToLong(Long::parseLong).toArray();
    }
    private static String part(String s) throws Exception { // of a key, as docs/lua.md has it
        byte[] b = s.getBytes(UTF_8);
        if (!UTF_8.newEncoder().canEncode(s)) throw new IllegalArgumentException("sluice: " + s + ": want no lone surrogate");
        if (b.length > 128) return "%%" + HexFormat.of().formatHex(java.security.MessageDigest.getInstance("SHA-256").digest(b));
        String plain = java.net.URLEncoder.encode(s, UTF_8).replace("+", "%20").replace("*", "%2A");
        return s.isEmpty() ? "%" : plain.replace("%3A", ":").replace("%40", "@").replace("%2F", "/");
    }
}
