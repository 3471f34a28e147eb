import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.*;
import org.apache.lucene.store.RAMDirectory;
/** Documents of made-up words, indexed and searched by one thread. */
public class Index {
    public static void main(String[] args) throws Exception {
        RAMDirectory directory = new RAMDirectory();
        StandardAnalyzer analyzer = new StandardAnalyzer();
        java.util.Random random = new java.util.Random(1);
        for (int round = 0; round < Integer.parseInt(args[0]); round++) {
            IndexWriterConfig config = new IndexWriterConfig(org.apache.lucene.util.Version.LATEST, analyzer);
            config.setMergeScheduler(new SerialMergeScheduler());
            config.setOpenMode(IndexWriterConfig.OpenMode.CREATE);
            try (IndexWriter writer = new IndexWriter(directory, config)) {
                for (int i = 0; i < 3000; i++) {
                    StringBuilder text = new StringBuilder();
                    for (int w = 0; w < 100; w++) text.append("word").append((int) Math.abs(random.nextGaussian() * 2000)).append(' ');
                    Document document = new Document();
                    document.add(new TextField("text", text.toString(), Field.Store.YES));
                    writer.addDocument(document);
                }
            }
            try (DirectoryReader reader = DirectoryReader.open(directory)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                QueryParser parser = new QueryParser("text", analyzer);
                long hits = 0;
                for (int i = 0; i < 1500; i++)
                    hits += searcher.search(parser.parse("word" + i + " OR word" + i * 3 + " OR wor*" + i), 10).totalHits;
                if (round % 5 == 0) System.out.println(hits);
            }
        }
    }
}
