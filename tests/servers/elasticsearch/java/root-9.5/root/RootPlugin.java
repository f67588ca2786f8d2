package root;

import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.RestHandler;

/** Adds GET / to 9.5; the signatures differ from line to line, what they return does not. */
public final class RootPlugin extends Plugin implements ActionPlugin {

    @Override
    public Collection<ActionHandler> getActions() {
        return List.of(new ActionHandler(RootAction.TYPE, RootAction.class));
    }

    @Override
    public Collection<RestHandler> getRestHandlers(RestHandlersServices services, Supplier<DiscoveryNodes> nodes,
            Predicate<NodeFeature> features) {
        return List.of(new RootHandler());
    }
}
