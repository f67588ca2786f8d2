package launch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.opensearch.Version;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/** One node of the 3.x line; server and plugins are on the class path. Usage: launch.Main HOME PLUGINCLASS... */
public final class Main extends Node {

    private Main(Environment environment, Collection<PluginInfo> plugins) {
        super(environment, plugins, false);
    }

    public static void main(String[] args) throws Exception {
        Launch.endWithParent();
        List<PluginInfo> plugins = new ArrayList<>();
        for (String name : List.of(args).subList(1, args.length)) {
            plugins.add(new PluginInfo(name, name, "tests", Version.CURRENT, "21", name, null, List.of(), false));
        }
        new Main(Launch.environment(args[0]), plugins).start();
        Thread.currentThread().join();
    }
}
