package org.elasticsearch.plugins;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import launch.Launch;
import org.elasticsearch.Version;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.Node;

/**
 * One node of 8.6 to 8.8; server and plugins are on the class path. Usage: org.elasticsearch.plugins.Main HOME PLUGINCLASS...
 * It is in this package because LoadedPlugin is package-private.
 */
public final class Main extends Node {

    /** Offers plugins of the class path; the stock service reads folders only. */
    private static final class ClassPathPlugins extends PluginsService {
        private final List<LoadedPlugin> loaded = new ArrayList<>();

        ClassPathPlugins(Settings settings, Path config, List<String> classNames) {
            super(settings, config, null, null);
            for (String name : classNames) {
                loaded.add(load(settings, config, name));
            }
            loadExtensions(loaded);
        }

        private LoadedPlugin load(Settings settings, Path config, String name) {
            try {
                var type = Class.forName(name).asSubclass(Plugin.class);
                var about = new PluginDescriptor(type.getSimpleName(), "from the class path", "1", Version.CURRENT,
                    "17", name, null, List.of(), false, false, false, false);
                return new LoadedPlugin(about, loadPlugin(type, settings, config));
            } catch (ClassNotFoundException missing) {
                throw new IllegalArgumentException(missing);
            }
        }

        @Override
        protected List<LoadedPlugin> plugins() {
            return loaded == null ? List.of() : loaded;  // null while the super constructor runs
        }
    }

    private Main(Environment environment, List<String> plugins) {
        super(environment, settings -> new ClassPathPlugins(settings, environment.configFile(), plugins), false);
    }

    public static void main(String[] args) throws Exception {
        Launch.endWithParent();
        LogConfigurator.configureESLogging();
        new Main(Launch.environment(args[0]), List.of(args).subList(1, args.length)).start();
        Thread.currentThread().join();
    }
}
