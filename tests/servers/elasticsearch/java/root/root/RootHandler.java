package root;

import java.io.IOException;
import java.util.List;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.rest.action.RestBuilderListener;
import org.elasticsearch.xcontent.XContentBuilder;

/** Routes GET / and HEAD / to the action. */
final class RootHandler extends BaseRestHandler {

    @Override
    public String getName() {
        return "root";
    }

    @Override
    public List<Route> routes() {
        return List.of(new Route(RestRequest.Method.GET, "/"), new Route(RestRequest.Method.HEAD, "/"));
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
        boolean pretty = request.paramAsBoolean("pretty", true);  // pretty unless told otherwise, as the stock handler
        return channel -> client.execute(RootAction.TYPE, new RootAction.Ask(), new RestBuilderListener<>(channel) {
            @Override
            public RestResponse buildResponse(RootAction.Answer answer, XContentBuilder out) throws IOException {
                if (pretty) {
                    out.prettyPrint().lfAtEnd();
                }
                return new RestResponse(RestStatus.OK, answer.toXContent(out, request));
            }
        });
    }
}
