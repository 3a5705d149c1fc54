package dev.shoal.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jsoup.nodes.Document;
import org.jsoup.nodes.Element;
import org.jsoup.parser.Parser;
import org.jsoup.select.Evaluator;
import org.jsoup.select.QueryParser;

/**
 * The bench's job for what one writes by hand in Java: the JDK's HTTP client, which keeps connections by itself, one thread
 * for each request under way, and jsoup with compiled selectors.
 */
public final class JsoupJob {
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final ObjectMapper json = new ObjectMapper();
    private final Map<String, Evaluator> texts = new LinkedHashMap<>();
    private final Evaluator canonical = QueryParser.parse("link[rel=canonical]");
    private final Iterator<String> addresses;
    private final BufferedWriter rows;

    private JsoupJob(Iterator<String> addresses, BufferedWriter rows, boolean absent) {
        this.addresses = addresses;
        this.rows = rows;
        texts.put("title", QueryParser.parse("h1.title"));
        texts.put("price", QueryParser.parse("main .price"));
        texts.put("sku", QueryParser.parse("div.sku"));
        texts.put("stock", QueryParser.parse("div.stock"));
        if (absent) {
            texts.put("absent", QueryParser.parse("div.absent"));
        }
    }

    public static void main(String[] args) throws Exception {
        int concurrency = Integer.parseInt(args[2]);
        try (BufferedWriter rows = Files.newBufferedWriter(Path.of(args[1]))) {
            JsoupJob job = new JsoupJob(Files.readAllLines(Path.of(args[0])).iterator(), rows, args.length > 3);
            var threads = Executors.newFixedThreadPool(concurrency);
            List<Future<?>> workers = new ArrayList<>();
            for (int i = 0; i < concurrency; i++) {
                workers.add(threads.submit(job::work));
            }
            for (Future<?> worker : workers) {
                worker.get();
            }
            threads.shutdown();
        }
    }

    private Void work() throws IOException, InterruptedException {
        for (String address = next(); address != null; address = next()) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(address)).build();
            HttpResponse<byte[]> response = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (response.statusCode() != 200) {
                throw new IOException(address + ": status " + response.statusCode());
            }
            String row = json.writeValueAsString(rowOf(response.body(), address)) + "\n";
            synchronized (rows) {
                rows.write(row);
            }
        }
        return null;
    }

    private String next() {
        synchronized (addresses) {
            return addresses.hasNext() ? addresses.next() : null;
        }
    }

    private Map<String, String> rowOf(byte[] body, String address) {
        Document page = Parser.htmlParser().parseInput(new String(body, StandardCharsets.UTF_8), address);
        Map<String, String> row = new LinkedHashMap<>();
        texts.forEach(
                (name, selector) -> {
                    Element found = page.selectFirst(selector);
                    row.put(name, found == null ? null : found.text());
                });
        Element link = page.selectFirst(canonical);
        row.put("canonical", link == null ? null : link.attr("href"));
        return row;
    }
}
