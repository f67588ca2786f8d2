package launch;

import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/** One node of 8.19; each plugin is a folder in MODULES with jars and a descriptor. Usage: launch.Main HOME MODULES */
public final class Main {

    private Main() {}

    public static void main(String[] args) throws Exception {
        Launch.endWithParent();
        LogConfigurator.configureESLogging();
        var modules = PluginsLoader.loadModulesBundles(Path.of(args[1]));
        // false: no module exports, since the server is on the class path and not on the module path
        var plugins = PluginsLoader.createPluginsLoader(modules, Set.of(), Map.of(), false);
        new Node(Launch.environment(args[0]), plugins).start();
        Thread.currentThread().join();
    }
}
