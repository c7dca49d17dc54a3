"""Jobs that come with Tachograph, written against its public API."""
