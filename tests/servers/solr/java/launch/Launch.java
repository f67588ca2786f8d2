package launch;

import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/** Starts one server over a folder, at a port of the loopback address. */
public final class Launch {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("solr.install.dir", arguments[0]);
        JettyConfig config = JettyConfig.builder().setPort(Integer.parseInt(arguments[1])).setContext("/solr").build();
        new JettySolrRunner(arguments[0], config).start();
        Thread.currentThread().join();
    }
}
