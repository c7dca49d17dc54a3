"""What Tachograph is compared with, each as its own authors would have it used."""
