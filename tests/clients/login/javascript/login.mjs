import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";

const config = new KubeConfig();
config.loadFromDefault();
const nodes = await config.makeApiClient(CoreV1Api).listNode();
console.log(nodes.items.length);
