import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.util.Config;

public class Login {
  public static void main(String[] args) throws Exception {
    CoreV1Api api = new CoreV1Api(Config.defaultClient());
    System.out.println(api.listNode().execute().getItems().size());
  }
}
