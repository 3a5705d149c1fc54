package dev.shoal.bench;

import com.digitalpebble.stormcrawler.Metadata;
import com.digitalpebble.stormcrawler.parse.JSoupFilter;
import com.digitalpebble.stormcrawler.parse.ParseResult;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jsoup.nodes.Document;
import org.jsoup.nodes.Element;
import org.jsoup.select.Evaluator;
import org.jsoup.select.QueryParser;

/** FieldFilter reads the fields by CSS, with selectors that are compiled once. */
public final class FieldFilter extends JSoupFilter {
    static final String ABSENT = "bench.absent";

    private final Map<String, Evaluator> texts = new LinkedHashMap<>();
    private final Evaluator canonical = QueryParser.parse("link[rel=canonical]");

    @Override
    public void configure(Map<String, Object> stormConf, JsonNode filterParams) {
        texts.put("title", QueryParser.parse("h1.title"));
        texts.put("price", QueryParser.parse("main .price"));
        texts.put("sku", QueryParser.parse("div.sku"));
        texts.put("stock", QueryParser.parse("div.stock"));
        if (Boolean.TRUE.equals(stormConf.get(ABSENT))) {
            texts.put("absent", QueryParser.parse("div.absent"));
        }
    }

    @Override
    public void filter(String url, byte[] content, Document page, ParseResult parse) {
        Metadata metadata = parse.get(url).getMetadata();
        texts.forEach(
                (name, selector) -> {
                    Element found = page.selectFirst(selector);
                    if (found != null) {
                        metadata.setValue(name, found.text());
                    }
                });
        Element link = page.selectFirst(canonical);
        if (link != null) {
            metadata.setValue("canonical", link.attr("href"));
        }
    }
}
