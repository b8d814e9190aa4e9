"""The benchmark families, campaigns over them, and the published figures beside ours."""
