use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let nodes = Api::<Node>::all(client).list(&ListParams::default()).await?;
    println!("{}", nodes.items.len());
    Ok(())
}
