package dev.shoal.bench;

import com.digitalpebble.stormcrawler.ConfigurableTopology;
import com.digitalpebble.stormcrawler.Metadata;
import com.digitalpebble.stormcrawler.bolt.FetcherBolt;
import com.digitalpebble.stormcrawler.bolt.JSoupParserBolt;
import com.digitalpebble.stormcrawler.persistence.Status;
import com.digitalpebble.stormcrawler.spout.FileSpout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.topology.TopologyBuilder;

/**
 * The bench's job for StormCrawler in Storm's local mode: its own file spout, fetcher and JSoup parser, a JSoup filter for
 * the fields, and an indexer that writes rows. The settings are in crawler-conf.yaml.
 */
public final class CrawlTopology extends ConfigurableTopology {
    public static void main(String[] args) {
        ConfigurableTopology.start(new CrawlTopology(), args);
    }

    @Override
    protected int run(String[] args) {
        String addresses = args[0];
        conf.put("fetcher.threads.number", Integer.parseInt(args[2]));
        conf.put(FieldFilter.ABSENT, args.length > 3);
        conf.put(RowIndexer.ROWS, args[1]);
        Config.registerSerialization(conf, Metadata.class);
        Config.registerSerialization(conf, Status.class);

        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("spout", new FileSpout(addresses));
        builder.setBolt("fetch", new FetcherBolt()).localOrShuffleGrouping("spout");
        builder.setBolt("parse", new JSoupParserBolt()).localOrShuffleGrouping("fetch");
        builder.setBolt("index", new RowIndexer()).localOrShuffleGrouping("parse");
        try (var lines = Files.lines(Path.of(addresses))) {
            conf.put(RowIndexer.EXPECTED, lines.count());
            LocalCluster cluster =
                    new LocalCluster.Builder().withSupervisors(1).withPortsPerSupervisor(1).build();
            cluster.submitTopology("crawl", conf, builder.createTopology());
            RowIndexer.awaitAll();
        } catch (Exception e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0); // a local cluster takes seconds to stop, and nothing of it is kept
        return 0;
    }
}
