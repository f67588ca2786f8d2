package root;

import java.io.IOException;
import org.elasticsearch.Build;
import org.elasticsearch.action.ActionListener;
import org.elasticsearch.action.ActionRequest;
import org.elasticsearch.action.ActionRequestValidationException;
import org.elasticsearch.action.ActionResponse;
import org.elasticsearch.action.ActionType;
import org.elasticsearch.action.support.ActionFilters;
import org.elasticsearch.action.support.TransportAction;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.common.io.stream.StreamOutput;
import org.elasticsearch.common.util.concurrent.EsExecutors;
import org.elasticsearch.index.IndexVersion;
import org.elasticsearch.injection.guice.Inject;
import org.elasticsearch.tasks.Task;
import org.elasticsearch.transport.TransportService;
import org.elasticsearch.xcontent.ToXContentObject;
import org.elasticsearch.xcontent.XContentBuilder;

/**
 * The answer of GET /, whose stock code lives from 8.9 on in a module that is not published.
 * It has the stock action name, so the real security code decides who may ask (cluster privilege "monitor").
 */
public final class RootAction extends TransportAction<RootAction.Ask, RootAction.Answer> {

    static final ActionType<Answer> TYPE = new ActionType<>("cluster:monitor/main");

    private final ClusterService cluster;

    @Inject
    public RootAction(TransportService transport, ActionFilters filters, ClusterService cluster) {
        super(TYPE.name(), filters, transport.getTaskManager(), EsExecutors.DIRECT_EXECUTOR_SERVICE);
        this.cluster = cluster;
    }

    @Override
    protected void doExecute(Task task, Ask ask, ActionListener<Answer> listener) {
        var state = cluster.state();
        listener.onResponse(
            new Answer(cluster.getNodeName(), state.getClusterName().value(), state.metadata().clusterUUID()));
    }

    public static final class Ask extends ActionRequest {
        @Override
        public ActionRequestValidationException validate() {
            return null;
        }
    }

    public static final class Answer extends ActionResponse implements ToXContentObject {
        private final String node;
        private final String cluster;
        private final String uuid;

        Answer(String node, String cluster, String uuid) {
            this.node = node;
            this.cluster = cluster;
            this.uuid = uuid;
        }

        @Override
        public void writeTo(StreamOutput out) {
            throw new UnsupportedOperationException("never leaves its node");
        }

        @Override
        public XContentBuilder toXContent(XContentBuilder out, Params params) throws IOException {
            Build build = Build.current();
            out.startObject().field("name", node).field("cluster_name", cluster).field("cluster_uuid", uuid);
            out.startObject("version")
                .field("number", build.qualifiedVersion())
                .field("build_flavor", build.flavor())
                .field("build_type", build.type().displayName())
                .field("build_hash", build.hash())
                .field("build_date", build.date())
                .field("build_snapshot", build.isSnapshot())
                .field("lucene_version", IndexVersion.current().luceneVersion().toString())
                .field("minimum_wire_compatibility_version", build.minWireCompatVersion())
                .field("minimum_index_compatibility_version", build.minIndexCompatVersion())
                .endObject();
            return out.field("tagline", "You Know, for Search").endObject();
        }
    }
}
