# Buys a day of one trn2.48xlarge by Terraform; docs/tasks/ec2.md#terraform says how to run the file.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.61" }
  }
}

# Addresses, region, access key and certificate come from build/up/aws.env.
provider "aws" {
  skip_metadata_api_check = true # only an instance of AWS has metadata
}

# The data source takes exactly one offering. From tomorrow on a search finds one for each zone;
# from today on it also finds the two forms that begin at once.
data "aws_ec2_capacity_block_offering" "day" {
  instance_type           = "trn2.48xlarge"
  instance_count          = 1
  capacity_duration_hours = 24
  start_date_range        = timeadd(plantimestamp(), "24h")
}

resource "aws_ec2_capacity_block_reservation" "day" {
  capacity_block_offering_id = data.aws_ec2_capacity_block_offering.day.capacity_block_offering_id
  instance_platform          = "Linux/UNIX"
  tags                       = { team = "research" }

  lifecycle {
    # The search of the next plan finds the next free day: no reason to buy that, too.
    ignore_changes = [capacity_block_offering_id]
    # A Capacity Block cannot be cancelled. Without this line `terraform destroy` forgets the
    # block, which stays paid.
    prevent_destroy = true
  }
}

output "reservation" {
  value = aws_ec2_capacity_block_reservation.day.id
}

output "start" {
  value = aws_ec2_capacity_block_reservation.day.start_date
}
