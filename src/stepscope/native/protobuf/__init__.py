"""The scanner of protobuf wire format and XSpace."""
