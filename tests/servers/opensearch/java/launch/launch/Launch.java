package launch;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;

/** What every launcher shares. All settings come from HOME/config/opensearch.yml; it compiles for 2.19 and 3.9. */
public final class Launch {

    private Launch() {}

    public static Environment environment(String home) {
        var settings = Settings.builder().put("path.home", home).build();
        return InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), Path.of(home, "config"), () -> "node");
    }

    /** Ends this process when standard input ends, which it does when the parent is gone, however it died. */
    public static void endWithParent() {
        var watcher = new Thread(Launch::drainInput, "end-with-parent");
        watcher.setDaemon(true);
        watcher.start();
    }

    private static void drainInput() {
        try {
            while (System.in.read() >= 0) {
                // nothing is ever sent
            }
        } catch (IOException closed) {
            // means the same
        }
        Runtime.getRuntime().halt(0);
    }
}
