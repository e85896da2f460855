import static java.nio.charset.StandardCharsets.UTF_8;
import java.io.*;
import java.util.*;

/** One budget with every Sluice process, over a socket's streams. One thread at a time; after an exception, make another. */
public record Sluice(BufferedReader in, OutputStream out, String script, String sha, String rule, String algorithm, List<String> params) {
    /** Charges n: {allowed, remaining, retry_after_ms, reset_after_ms}. An IOException: Redis could not decide. */
    public long[] take(String subject, long n) throws Exception {
        String key = "sluice:{" + part(subject) + "}:" + part(rule) + ":" + algorithm;
        long[] reply = call("EVALSHA", sha, "1", key, "", "" + n);
        return reply != null ? reply : call("EVAL", script, "1", key, "", "" + n); // NOSCRIPT: nothing was executed
    }
    private long[] call(String... args) throws IOException {
        StringBuilder text = new StringBuilder("*" + (args.length + params.size()) + "\r\n");
        for (List<String> list : List.of(List.of(args), params))
            for (String a : list) text.append("$" + a.getBytes(UTF_8).length + "\r\n" + a + "\r\n");
        out.write(text.toString().getBytes(UTF_8));
        String first = "" + in.readLine();
        if (!first.equals("*4") && !first.startsWith("-NOSCRIPT")) throw new IOException("Redis: " + first);
        return first.equals("*4") ? new long[] {number(), number(), number(), number()} : null;
    }
    private long number() throws IOException { return Long.parseLong(in.readLine().substring(1)); }
    private static String part(String s) throws Exception { // of a key, as docs/lua.md has it
        byte[] b = s.getBytes(UTF_8);
        if (b.length > 128) return "%%" + HexFormat.of().formatHex(java.security.MessageDigest.getInstance("SHA-256").digest(b));
        String plain = java.net.URLEncoder.encode(s, UTF_8).replace("+", "%20").replace("*", "%2A");
        return s.isEmpty() ? "%" : plain.replace("%3A", ":").replace("%40", "@").replace("%2F", "/");
    }
}
