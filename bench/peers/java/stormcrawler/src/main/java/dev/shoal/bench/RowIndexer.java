package dev.shoal.bench;

import com.digitalpebble.stormcrawler.Metadata;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.tuple.Tuple;

/** RowIndexer writes a row of each page, and knows when it has written all. */
public final class RowIndexer extends BaseRichBolt {
    static final String ROWS = "bench.rows";
    static final String EXPECTED = "bench.expected";
    private static final String[] FIELDS = {"title", "price", "sku", "stock", "canonical", "absent"};
    private static final CountDownLatch ALL = new CountDownLatch(1);

    private transient OutputCollector collector;
    private transient ObjectMapper json;
    private transient BufferedWriter rows;
    private long missing;

    static void awaitAll() throws InterruptedException {
        ALL.await();
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector collector) {
        this.collector = collector;
        json = new ObjectMapper();
        missing = ((Number) conf.get(EXPECTED)).longValue();
        try {
            rows = Files.newBufferedWriter(Path.of((String) conf.get(ROWS)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void execute(Tuple tuple) {
        Metadata metadata = (Metadata) tuple.getValueByField("metadata");
        Map<String, String> row = new LinkedHashMap<>();
        for (String field : FIELDS) {
            row.put(field, metadata.getFirstValue(field));
        }
        try {
            rows.write(json.writeValueAsString(row));
            rows.write('\n');
            if (--missing == 0) {
                rows.close();
                ALL.countDown();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        collector.ack(tuple);
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}
}
