package analysis;

import java.util.Map;
import java.util.function.UnaryOperator;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.standard.StandardTokenizer;
import org.elasticsearch.index.analysis.TokenFilterFactory;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;

/**
 * Stand-ins for three parts of the unpublished analysis-common. Without them the index that holds API keys cannot be
 * made; they shape only its field of e-mail addresses. It compiles for 7.10 and 8.19.
 */
public final class SecurityIndexAnalysis extends Plugin implements AnalysisPlugin {

    @Override
    public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("uax_url_email",
            (index, env, name, settings) -> TokenizerFactory.newFactory(name, StandardTokenizer::new));
    }

    @Override
    public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of(
            "pattern_capture", (index, env, name, settings) -> filter(name, tokens -> tokens),
            "unique", (index, env, name, settings) -> filter(name, RemoveDuplicatesTokenFilter::new));
    }

    private static TokenFilterFactory filter(String name, UnaryOperator<TokenStream> wrap) {
        return new TokenFilterFactory() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public TokenStream create(TokenStream tokens) {
                return wrap.apply(tokens);
            }
        };
    }
}
